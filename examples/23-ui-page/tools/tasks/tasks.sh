#!/bin/sh
# mcp: {"description": "All tasks, with the column that each is in", "inputSchema": {}}
echo '{"cards": [{"id": "t1", "title": "Write", "column": "todo"}, {"id": "t2", "title": "Read", "column": "done"}]}'
