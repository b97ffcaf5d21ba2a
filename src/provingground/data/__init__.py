<<<<<<< HEAD
"""Samplers and data that several studies share."""
=======
"""Samplers that several studies share."""
>>>>>>> vision
