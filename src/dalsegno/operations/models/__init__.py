"""Tables that ``.sql`` files declare: a folder of models is a set of workflows without any YAML."""
