"""The families of resources: builders of bodies, and handlers of what can be done to them."""
