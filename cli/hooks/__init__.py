"""What `opsx hook` is made of: the frames of each host, the places it watches, the ruling and the answer."""
