"""Episodes: a worker in a world, under a treatment, with an observer; one of them, then thousands.

- `results`: the row of an episode, and the folder in which rows and logs are kept
- `real_models`: the real models of an episode: answers kept, requests paced
- `red_team`: what a real attacker is told, as a prompt or by a function
- `treatment`: the b-threads, effects and monitors of an episode
- `observer`: what measures need of an episode, written down step by step
- `episode`: one of them, and its row
- `pools`: many of them: at once, on worker processes, on Ray
"""
