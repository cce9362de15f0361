"""The guard: reads, judges, records and runs commands.

`judge/` thinks and touches nothing, `ledger/` keeps and touches the state folder only, `hands/` acts.
They meet in `core` and `execution`, never behind each other's backs.
"""
