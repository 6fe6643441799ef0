"""Where the rows of a task come from: folders, the hub, embedded tasks."""
