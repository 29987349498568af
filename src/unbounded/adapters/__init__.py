"""The learners as other libraries want them; a module needs the library that it is named after."""
