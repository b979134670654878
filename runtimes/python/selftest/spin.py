say("spin.began", "yes")
while True:
    pass
