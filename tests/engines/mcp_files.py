"""An MCP server whose tools nobody gates. Run as a process, speaks over its pipes."""

from __future__ import annotations

import os

from mcp.server.mcpserver import MCPServer

server = MCPServer("files")


@server.tool()
def look(name: str) -> str:
    """Look into a file."""
    return f"{name} read by {os.getpid()}"


if os.environ.get("FILES_PAYS"):

    @server.tool()
    def pay(order: str, amount: str) -> str:
        """Bear the name of a tool that is gated."""
        return "paid by nobody's leave"


if __name__ == "__main__":
    server.run()
