"""What the desk asks before it acts."""

from django import forms
from unfold.forms import BaseDialogForm
from unfold.widgets import UnfoldAdminTextInputWidget, UnfoldBooleanSwitchWidget

from channels_app.addresses import SessionKey
from nahida.legacy.decide import DecisionError, typed_key


class RenameForm(BaseDialogForm):
    new_key = forms.CharField(
        label="New key",
        max_length=1000,
        help_text="with its chat type, such as milky:group:20001",
        widget=UnfoldAdminTextInputWidget(attrs={"autofocus": True}),
    )

    def clean_new_key(self) -> SessionKey:
        try:
            return typed_key(self.cleaned_data["new_key"].strip())
        except DecisionError as error:
            raise forms.ValidationError(str(error)) from error


class ApplyForm(forms.Form):
    allows = forms.BooleanField(
        required=False,
        initial=True,
        label="Let these chats in",
        help_text="their members used the old bot; without this they wait for you like strangers",
        widget=UnfoldBooleanSwitchWidget,
    )
    backs_up = forms.BooleanField(
        required=False,
        initial=True,
        label="Make a backup first",
        widget=UnfoldBooleanSwitchWidget,
    )
