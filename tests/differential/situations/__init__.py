"""Situations of controllers, and pods of one field each: with the real controllers and scheduler, and with ours."""
