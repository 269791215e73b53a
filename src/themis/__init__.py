"""Tests decision software for discrimination."""
