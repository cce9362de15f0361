"""Under the MCP server: the official package without what a stdio server never uses, and lines read strictly."""
