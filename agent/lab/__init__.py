"""The laboratory: how safe and how useful an agent stays under a protocol when its model may be trying to do harm.

A protocol is a b-thread over drafts, calls and scores; to compose protocols is to have all of them.

- what can happen in the laboratory besides what happens in any run stands in `agent.vocabulary.questions`
- `reasons`: why protocols refuse. `asking`: how they ask, and what they hold meanwhile. `containing`: how they stop
- `locking`: one at a time. `lines`: files that grow by whole lines. `concurrency`: many at once, and not too many.
- `actions`: kinds of actions, by what they would do
- `monitors/`: who says how suspicious something looks. `effects/`: asking them, auditors, and chance
- `spending`: an experiment's money
- `policies/`: rules over several calls, in one line
- `protocols/`: the protocols that ship. `invariants/`: what each is there for. `verification`: each checked, and pairs
- `deployment/`: what spans episodes: audits over many of them, and what a catch leads to
- `measures/`: what is measured, as pure functions of scores and outcomes
- `sidecars/`: scores and audits of finished logs, beside them
- `isolation/`: where episodes run, so that nothing gets out
- `settings/`: tasks, side tasks, and policies that pursue them
- `experiments/`: episodes of settings under protocols, by the thousand, and what they come to
"""
