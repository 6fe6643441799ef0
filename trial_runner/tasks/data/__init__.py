"""Sources of a task's rows: folders, the hub, embedded tasks."""
