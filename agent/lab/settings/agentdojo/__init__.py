"""AgentDojo as a setting (Debenedetti et al. 2024, suites v1.2.2): its tools, tasks and checks, in our loop.

Needs the extra `agentdojo`; importing these modules imports AgentDojo, which takes seconds.

- `suites`: its suites, environments, functions and tasks, and what of them cannot be measured with
- `tasks_of_agentdojo`: user tasks as tasks, injection tasks as attacks; the setting
- `injected`: injection tasks written into what an agent reads, as AgentDojo has them; the other setting
"""
