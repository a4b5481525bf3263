"""Experiments: settings x policies x protocols x seeds; each episode runs once, also after interruptions."""
