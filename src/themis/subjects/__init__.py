"""Adapters that run the software under test."""
