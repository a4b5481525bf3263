"""Episodes: a worker in a world, under a treatment, with an observer; one of them, then thousands.

- `results`: the row of an episode, and the folder in which rows and logs are kept
- `real_models`: the real models of an episode: answers kept, requests paced
- `red_team`: the instructions of a real attacker, as a prompt or a function
- `treatment`: the b-threads, effects and monitors of an episode
- `observer`: records what measures need of an episode, step by step
- `episode`: one of them, and its row
- `pools`: many episodes in parallel: in one process, on worker processes, on Ray
"""
