"""One module per runbook. `runbooks.catalogue` names them and loads the ones that a question needs."""
