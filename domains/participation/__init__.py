"""Who may take part when: index sets of one person, and what a person adds to all answers."""
