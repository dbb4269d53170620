"""Fine-tuning and pretraining. Importing the modules in here imports torch."""
