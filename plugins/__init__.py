"""The plugins of this repository: `formats`, `gaps`, `more_apis`, `steps` and `vcs`. The core imports none of them."""
