"""AgentDojo as a setting (Debenedetti et al. 2024, suites v1.2.2): its tools, tasks and checks, in our loop.

Needs the extra `agentdojo`; importing these modules imports AgentDojo, which takes seconds.

- `suites`: its suites, environments and tasks
- `scenes`: an environment under way, in which calls are carried out and judged by its checks
- `functions`: its functions as tools of ours
- `rooms`: the world of an episode
- `exceptions`: what of it cannot be measured with, and why
- `tasks_of_agentdojo`: user tasks as tasks, injection tasks as attacks; the setting
- `injected`: injection tasks written into what an agent reads, as AgentDojo has them; the other setting
"""
