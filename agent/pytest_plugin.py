"""What pytest loads when bpagent is installed: nothing yet."""
