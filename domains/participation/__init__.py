"""Who may take part when: index sets that one person may occupy, and the sets of what a person adds
to all answers.
"""
