"""A simple command becomes findings: each analysis takes a command and returns steps, which `examine` carries out."""
