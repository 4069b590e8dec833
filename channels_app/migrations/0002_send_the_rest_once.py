
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('channels_app', '0001_record_the_wire'),
    ]

    operations = [
        migrations.AddField(
            model_name='delivery',
            name='continues',
            field=models.OneToOneField(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='rest', to='channels_app.delivery'),
        ),
    ]
