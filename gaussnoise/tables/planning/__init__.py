"""Plans of releases: what will be measured, how accurately and at what cost, without any data."""
