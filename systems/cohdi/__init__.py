"""CoHDI: composable-dra-driver, composable-resource-operator and dynamic-device-scaler, which are the user's."""
