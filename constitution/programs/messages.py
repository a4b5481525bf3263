"""Programs that tell people something: messages, issues, what an application shows to whom."""

from constitution.effects import Effect
from constitution.programs.program import Does, Program

__all__ = ["MESSAGES"]

TELLS = "tell others something"

MESSAGES = (
    Program(
        "slack|jira|linear|acli|twurl|telegram-send|telegram-cli|discord|matrix-commander|signal-cli|twitter|toot|bsky"
        "|notion|trello|asana|clickup|zulip-send|mattermost-cli|mmctl|pd|pagerduty|opsgenie|intercom|mailgun|sendgrid"
        "|mailchimp|hubspot|zendesk",
        [
            Does(
                Effect.PUBLISH,
                words=r"^(send|create|move|comment|assign|transition|edit|update|close|post|add|tweet|publish|reply|new"
                r"|upload|resolve|trigger|ack|acknowledge|broadcast|notify|link|clone|set|toot|worklog|epic)$",
                says=TELLS,
                match=("slack chat send hi", "jira issue move X-1 Done", "toot post hi"),
                not_match=("jira issue list", "linear issue view X"),
            )
        ],
    ),
    Program(
        "telegram-send|zulip-send|apprise|ntfy|notify|wall|gotify|pushover|mosquitto_pub|twurl|mattermost"
        "|gammu-smsd-inject|amqp-publish|k6 cloud",
        [
            Does(
                Effect.PUBLISH,
                words=".",
                unless="--help -h --version",
                says=TELLS,
                match=("ntfy publish x hi", "mosquitto_pub -t a -m b x", "wall hi"),
                not_match=("mosquitto_pub --help",),
            ),
            Does(
                Effect.PUBLISH,
                given="-m --message -b -t",
                says=TELLS,
                match=("mosquitto_pub -t a -m b",),
                not_match=("ntfy --help",),
            ),
        ],
        takes="-h -p",
    ),
    Program(
        "gh issue|gh pr|glab issue|glab mr|gh discussion|gh label|gh project|glab label|gh codespace|gh cs",
        [
            Does(
                Effect.CLOUD_CHANGE,
                words=r"^(comment|edit|close|reopen|pin|unpin|transfer|lock|unlock|note|update|ready|approve|revoke"
                r"|develop|item-\w+|field-\w+|stop|rebuild|update-branch|subscribe|todo|rebase|merge)$",
                says="change what others see",
                match=("gh issue edit 1 --add-label x", "gh pr comment 1 -b x", "glab mr note 1 -m x"),
                not_match=("gh issue list", "gh pr create --fill", "gh pr checkout 1"),
            )
        ],
        takes="-R --repo -t --title -b -F --body-file -X --method -f --field --input --raw-field -q --jq -L "
        "--label --visibility -m --message",
    ),
    Program(
        "gh issue|glab issue|gh label|gh project|gh codespace|gh cs",
        [
            Does(
                Effect.CLOUD_CHANGE,
                words="^create$",
                says="change what others see",
                match=("gh issue create -t x",),
                not_match=("gh issue view 1",),
            )
        ],
        takes="-R --repo -t --title -b -F --body-file -X --method -f --field --input --raw-field -q --jq -L "
        "--label --visibility -m --message",
    ),
    Program(
        "ldcli|launchdarkly|unleash|flagsmith|growthbook|statsig|posthog|configcat|flipt|unleash-cli",
        [
            Does(
                Effect.CLOUD_CHANGE,
                words=r"^(on|off|toggle|toggle-on|toggle-off|update|create|archive|enable|disable|set|patch|import|copy"
                r"|rollout)$",
                says="change what people see",
                match=("ldcli flags toggle-on --flag x", "launchdarkly flag on"),
                not_match=("ldcli flags list",),
            )
        ],
    ),
)
