"""The plugins of this repository: `chats`, `formats`, `gaps`, `more_apis`, `steps` and `vcs`. The core imports none of them."""
