"""Ends as a program would that wants to be taken for one that was stopped."""
os.write(1, b'{"status": "success", "exit_code": 0}\n')
os.kill(os.getpid(), 9)
