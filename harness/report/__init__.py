"""What people and programs are told about runs: text, JSON, JUnit XML, HTML."""
