"""StepCache."""
