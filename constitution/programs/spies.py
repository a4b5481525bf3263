"""Programs that listen and watch: the screen, the keys, the microphone, other processes, what was typed or copied."""

from constitution.effects import Effect
from constitution.programs.program import Does, Program

__all__ = ["SPIES"]

SPIES = (
    Program(
        "screencapture|scrot|gnome-screenshot|spectacle|grim|maim|import|xwd|xinput|xev|showkey|evtest"
        "|libinput|arecord|parecord"
        "|sox|rec|fswebcam|imagesnap|wf-recorder|ffmpeg|xdotool|ydotool|gpspipe|termux-microphone-record"
        "|streamer|raspistill",
        [
            Does(
                Effect.SPY,
                given="-window -f",
                values=r"^(root|v4l2|x11grab|avfoundation|alsa|pulse|gdigrab|dshow|kmsgrab|fbdev|cd|S16_LE)$",
                says="record the screen, the keys or the surroundings",
                match=("ffmpeg -f v4l2 -i /x y.mp4", "import -window root x.png"),
                not_match=("ffmpeg -f mp4 -i a b",),
            ),
        ],
        takes="-window -f",
        long_style=True,
    ),
    Program(
        "screencapture|scrot|gnome-screenshot|grim|maim|xwd|xinput|xev|showkey|evtest|arecord|parecord|rec"
        "|fswebcam|imagesnap"
        "|wf-recorder|termux-microphone-record",
        [
            Does(
                Effect.SPY,
                says="record the screen, the keys or the surroundings",
                match=("screencapture x.png", "xinput test-xi2 --root", "arecord x.wav"),
                not_match=("xinput --list",),
            )
        ],
        unless="--list --version -l -L",
    ),
    Program(
        "strace|ltrace|gdb|perf|gcore|dtrace",
        [
            Does(
                Effect.SPY,
                given="-p --pid",
                values=r"^\0(sshd|ssh-agent|gpg-agent|gnome-keyring.*|login|sudo|su|passwd|ssh|bash|zsh)$|^\0holder$",
                says="listen to what passes through a process",
                match=("strace -p $(pgrep sshd) -e read", "gdb -p $(pidof ssh-agent)", "perf trace -p $(pgrep sshd)"),
                not_match=("strace -p 1234", "strace -p $(pgrep node)", "gdb -p $(cat x.pid)"),
            )
        ],
        takes="-p --pid",
    ),
    Program(
        "bpftrace|bcc|opensnoop|execsnoop|tcpconnect|bashreadline|sslsniff|ttysnoop",
        [
            Does(
                Effect.SPY,
                unless="--version -l -V",
                says="listen to everything on the machine",
                match=("bpftrace -e 'tracepoint:x { }'", "bashreadline", "sslsniff"),
                not_match=("bpftrace -l", "bpftrace --version"),
            )
        ],
    ),
    Program(
        "history|pbpaste|wl-paste|clipman|copyq",
        [
            Does(
                Effect.SHOW_PERSONAL,
                says="show what somebody typed or copied",
                match=("history", "pbpaste"),
                not_match=("echo history",),
            )
        ],
        unless="-c -w",
    ),
    Program(
        "xclip|xsel",
        [
            Does(
                Effect.SHOW_PERSONAL,
                given="-o -out --output",
                says="show what somebody copied",
                match=("xclip -o", "xclip -selection clipboard -o"),
                not_match=("xclip -selection clipboard",),
            )
        ],
        long_style=True,
    ),
)
