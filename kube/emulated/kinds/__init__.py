"""What only code can say of built-in kinds; ``registry`` names it by kind."""
