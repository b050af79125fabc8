"""A notebook whose variables live as long as the session."""

import ast

import mcp_tool

names: dict = {}  # the state


@mcp_tool.tool(stays="session")
def run(code: str) -> str:
    """Run Python in the notebook of this session, and return the value of the last expression.

    Args:
        code: Statements, as in a cell
    """
    *statements, last = ast.parse(code).body
    if not isinstance(last, ast.Expr):
        exec(code, names)
        return ""
    exec(compile(ast.Module(statements, []), "cell", "exec"), names)
    return repr(eval(compile(ast.Expression(last.value), "cell", "eval"), names))


@mcp_tool.tool(stays="session", read_only=True)
def variables() -> list[str]:
    """List the variables of this session."""
    return sorted(name for name in names if not name.startswith("__"))
