"""What that process reads for many pages; for a few, a worker reads it only for a page whose language its words leave open."""

from ingestion.convert.language import read_profiles

read_profiles()
