"""Payloads, wrenches at the base or at a tool, and drive gains."""
