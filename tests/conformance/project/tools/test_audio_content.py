#!/usr/bin/env python3
# mcp: {"description": "Play a sound"}
import io
import os
import sys
import wave

sys.path.insert(0, os.environ["MCP_SDK"])
import mcp_tool

sound = io.BytesIO()
with wave.open(sound, "wb") as file:
    file.setnchannels(1)
    file.setsampwidth(1)
    file.setframerate(8000)
    file.writeframes(b"\x80" * 80)
mcp_tool.result(mcp_tool.audio_block(sound.getvalue(), "audio/wav"))
