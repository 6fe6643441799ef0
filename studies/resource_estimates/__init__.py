"""What can be known of a study before it is launched: its data, its noise, its speed, its size."""
