"""How each effect is said: what completes "<program> would ..."."""

from constitution.effects import Effect

__all__ = ["PHRASES"]

PHRASES = {
    Effect.READ: "read {path}",
    Effect.LIST: "list {path}",
    Effect.HANDLE: "get {path} to work with",
    Effect.WRITE: "write {path}",
    Effect.DELETE: "delete {path}",
    Effect.DELETE_TREE: "delete {path} recursively",
    Effect.EXECUTE: "run {path}",
    Effect.READ_TREE: "read everything in {path}",
    Effect.SEARCH_PATH: "look for programs in {path}",
    Effect.PRELOAD: "make programs load {path}",
    Effect.PERMISSIONS: "change the permissions of {path}",
    Effect.OPEN_TO_ALL: "open {path} to everybody",
    Effect.NETWORK: "reach {path} over the network",
    Effect.KILL: "end processes",
    Effect.RAW_COPY: "copy raw bytes",
    Effect.UNKNOWN_PROGRAM: "do something unknown with {path}",
    Effect.RUN_FETCHED_CODE: "run code that was downloaded or decoded",
    Effect.RUN_UNKNOWN_CODE: "run text that cannot be known",
}
