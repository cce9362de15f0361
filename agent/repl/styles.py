"""What the names of styles look like. Colours are the terminal's own sixteen, so that its theme decides how they read.

Confirm is yellow; what is irreversible, and "no way back", red; refused, done, degraded and plain results differ from
each other and from both. Every state also has its own mark and words: nothing is told by colour alone.
"""

STYLES = {
    "person": "bg:ansibrightblack fg:ansiwhite",
    "person.mark": "bg:ansibrightblack fg:ansiwhite bold",
    "tool": "bold",
    "output": "",
    "running": "fg:ansicyan",
    "done": "fg:ansigreen",
    "failed": "fg:ansired",
    "refused": "fg:ansimagenta",
    "confirm": "fg:ansiyellow bold",
    "danger": "fg:ansired bold",
    "degraded": "fg:ansiblue",
    "dim": "fg:ansibrightblack",
    "md.heading": "bold underline",
    "md.mark": "fg:ansibrightblack",
    "md.strong": "bold",
    "md.em": "italic",
    "md.code": "fg:ansicyan",
    "md.code-block": "fg:ansicyan",
    "md.link": "underline",
    "md.quote": "italic",
    "md.edge": "fg:ansibrightblack",
    "diff.head": "bold",
    "diff.add": "fg:ansigreen",
    "diff.del": "fg:ansired",
    "dock.frame": "fg:ansiyellow",
    "dock.frame.danger": "fg:ansired bold",
    "dock.key": "bold",
    "dock.typed": "bold",
    "status": "reverse",
    "status-danger": "reverse fg:ansired bold",
    "queued": "fg:ansibrightblack italic",
}
"""Style name → prompt_toolkit style; names with a dot are nested classes there (`md.code` is also under `md`)."""
