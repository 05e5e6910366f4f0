"""Cases by seed. They are drawn from what clients may send, never from what our server looks at."""
