"""The terminal conversation: a fold over events, drawn inline, with the permission dock at the bottom.

`transcript`, `blocks`, `markdown`, `rows` and `dock` are pure; `app` is the terminal, `plain` the same words without
control codes.
"""
