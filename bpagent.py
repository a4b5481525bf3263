"""The entry point of the command `bpagent`: until it can say something, Ctrl-C ends it without a traceback."""

import _signal  # type: ignore[import-not-found]  # `signal` imports for milliseconds, in which Ctrl-C is a traceback

if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:  # else it is ignored, as under nohup
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)


def main() -> int:
    """Run the command line of this process and return its exit code."""
    from agent.cli import main

    return main()
