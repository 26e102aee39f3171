"""Ask the server on the Unix socket CHAT_ADMIN:

    admin.py list
    admin.py close N [CODE]

Code 1012 says "service restart": a client may come back, after a pause.
"""

import os
import socket
import sys

words = sys.argv[1:]
if words[:1] == ["close"] and len(words) == 2:
    words.append("1012")
with socket.socket(socket.AF_UNIX) as s:
    s.connect(os.environ["CHAT_ADMIN"])
    s.sendall(" ".join(words).encode() + b"\n")
    answer = s.makefile().read()
if answer.startswith("error"):
    sys.exit(answer.strip())
sys.stdout.write(answer)
