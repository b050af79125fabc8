#!/bin/sh
# mcp: {"description": "Explain how to serve your own scripts instead of this example", "inputSchema": {}, "annotations": {"readOnlyHint": true}}
# For users who see this example by accident. Plain sh: it needs nothing but the server itself.

quoted() { printf '"%s"' "$(printf '%s' "$1" | sed 's/[\\"]/\\&/g')"; }

beside_python=${MCPGREEN_PYTHON%/*}/mcpgreen
if [ -n "${MCPGREEN_LAUNCHER-}" ]; then
  command=$(quoted "$MCPGREEN_LAUNCHER") first_words=''
elif [ -x "$beside_python" ]; then
  command=$(quoted "$beside_python") first_words=''
else
  command=$(quoted "$MCPGREEN_PYTHON") first_words='"-m", "mcpgreen", '
fi

folder=$HOME/my-server
[ "$HOME" != "$MCPGREEN_PROJECT_ROOT" ] || folder=/path/to/my-server # the server sets HOME to this if there is no home

cat <<TEXT
This is the example that comes with mcpgreen. It is served when the client's configuration names no project, and none
is found in the folder where the client starts the server, or in a parent folder.

To serve your own scripts:

1. Create a folder with tools/ in it, and put an executable there, in any language:

mkdir -p '$folder/tools'
printf '#!/bin/sh\necho "Hello from a script."\n' > '$folder/tools/hello.sh'
chmod 755 '$folder/tools/hello.sh'

2. Name the folder in the client's configuration, with its full path. Many clients have entries like this one; in some
the outer object has another name, such as "servers" in VS Code:

{
  "mcpServers": {
    "my-server": {
      "command": $command,
      "args": [$first_words"serve", "--project-root", $(quoted "$folder")]
    }
  }
}

Instead of using --project-root, you can set MCPGREEN_PROJECT_ROOT in the entry's "env".

3. Restart the client, or its connection to the server. The tool is called hello.
TEXT
