"""What may be said: function files, JSON Schema and call formats as grammars."""
