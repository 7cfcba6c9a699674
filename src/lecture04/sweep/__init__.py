"""From the overrides of `-m` to a comparison table: rows, plan, launching, and what is shown meanwhile."""
