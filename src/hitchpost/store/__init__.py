"""What is on disk: state, records, story, index. Light on purpose: the keeper imports ``store.files`` through it."""
