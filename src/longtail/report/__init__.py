"""What a model does on a test set, as one self-contained page to send to a colleague."""
