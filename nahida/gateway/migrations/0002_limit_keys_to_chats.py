from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [("gateway", "0001_keep_api_keys")]

    operations = [
        migrations.AddField(
            model_name="apikey",
            name="limited",
            field=models.BooleanField(
                default=False, help_text="reaches only the chats listed here"
            ),
        ),
    ]
